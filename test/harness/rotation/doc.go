// SPDX-License-Identifier: Apache-2.0

// Package rotation chooses the part of a long test that a quick run makes. Successive
// rotations choose other parts, and a few of them make up the whole. The environment
// variable PLUMBLINE_ROTATION holds the number, so that a part can be run again
// ([FromEnvironment]). [Slice] divides a list, [Pairs] a table, [Share] tests.
package rotation
