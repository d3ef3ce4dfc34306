module example.com/outside

go 1.26.0

require modelgate v0.0.0

replace modelgate => ../..
