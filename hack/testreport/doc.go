// SPDX-License-Identifier: Apache-2.0

// Testreport is a filter for the output of go test -json. It prints a line for each
// package as the package ends, all that failed tests have said, and at the end where
// the time of the run went and why tests failed:
//
//	{ go test -json ./a; go test -json ./b; } | testreport -stage unit -waits DIR
//
// It exits with 1 when a test or a build failed, when the input ends before a package
// has ended, and when no package was tested.
package main
