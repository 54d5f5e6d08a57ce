"""What stations lose that send without being told when: collisions of packets and frames."""
