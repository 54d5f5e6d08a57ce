"""Many runs: side by side in processes of this machine or on a cluster, and what is stored of them."""
