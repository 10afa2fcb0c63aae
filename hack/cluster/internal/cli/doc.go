// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of the cluster program: one file per group of
// subcommands, each of which parses flags and calls the package that does the
// work. Results go to standard output, everything else to standard error.
package cli
