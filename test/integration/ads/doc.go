// SPDX-License-Identifier: Apache-2.0

// Package ads has the tests of our discovery server with real Envoys: the server in
// the test's own process, over TLS; Envoys, backends and an open-loop load on
// loopback. What requests see is the measure: none may fail.
package ads
