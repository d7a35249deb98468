"""What tests of several folders share: databases, fixtures, programs, proxies, clocks and waiting with deadlines."""
