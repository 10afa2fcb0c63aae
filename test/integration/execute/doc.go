// SPDX-License-Identifier: Apache-2.0

// Package execute tests remediation against a real API server, with the assessor
// and the executor as their binaries run them and with the rights that the chart
// gives each of them.
package execute
