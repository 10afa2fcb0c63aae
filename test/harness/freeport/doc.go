// SPDX-License-Identifier: Apache-2.0

// Package freeport finds ports for servers that tests start on loopback and tell
// others about before they listen ([Claim], [For], [Address]). A port that was
// found belongs to the process that asked until it ends: nobody else who asks
// here is given it, also not while its server is stopped and started again.
//
// A test whose server can be handed a listener, or can say which port it took,
// listens on port 0 instead and needs none of this.
package freeport
