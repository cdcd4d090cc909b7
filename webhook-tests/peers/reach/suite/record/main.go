// Prints what Kubernetes' suite of network policies expects. Usage: record VERSION, through the command `vectors`.
package main

import (
	"os"

	"drawbridge.dev/peers/reach/suite/netpol"
)

func main() { netpol.Record(os.Args[1]) }
