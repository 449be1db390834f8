module example.org/swirl-clients

go 1.19
