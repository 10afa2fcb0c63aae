// SPDX-License-Identifier: Apache-2.0

// Package console has the command "console": it serves the API on the user's own machine, with the
// user's kubeconfig.
package console
