// SPDX-License-Identifier: Apache-2.0

// Package rendered runs Helm on charts/plumbline for tests. A Client is one
// helm binary; Template gives the objects that an installation would have, as
// unstructured values in the order in which Helm applies them, and Convert turns
// one into its Go type, refusing fields that the type does not have.
//
// The binary itself is run, not Helm's Go packages: it is what users run, and
// those packages would bring more dependencies than the whole project has.
package rendered
