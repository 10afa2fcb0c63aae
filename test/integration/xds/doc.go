// SPDX-License-Identifier: Apache-2.0

// Package xds has the tests of the discovery server as it is installed: the process,
// under the roles of the chart, with the certificate that it makes, on a real API
// server and with a real Envoy.
package xds
