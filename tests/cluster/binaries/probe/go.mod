module watercolour.dev/tests/cluster/binaries/probe

go 1.26
