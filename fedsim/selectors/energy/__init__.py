"""Selection by the energy that participations take from clients."""
