// SPDX-License-Identifier: Apache-2.0

// Command pictures draws the pictures of the documentation as SVG: the flow of data, and a
// recorded terminal of the demo. Both can be read on a dark and on a light page. `make
// generate` draws them, and `make verify` compares them.
//
//	go run ./hack/pictures draw docs/pictures           # flow.svg, and demo.svg from demo.txt
//	make demo | go run ./hack/pictures record demo.txt  # the scenes of the demo, with their times
package main

//go:generate go run github.com/plumbline-dev/plumbline/hack/pictures draw ../../docs/pictures
