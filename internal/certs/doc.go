// SPDX-License-Identifier: Apache-2.0

// Package certs keeps the certificates of a server: a certificate authority and a
// short-lived serving certificate in one Secret, and the authority where callers
// find it (Publisher): in the caBundle of the webhook configurations, or, for the
// discovery server, in a ConfigMap.
//
// Decide is the heart: a pure function from what is stored and published, and
// the time, to what has to be done. Keeper carries it out. Every replica
// watches the Secret and serves what it holds, without a restart; only the
// holder of a lease writes, and every write carries a precondition, so that two
// holders for a moment still make one authority.
//
// A change of authority never interrupts calls: first the new authority joins
// the old one in the bundle, then, when the bundle has been seen published for
// Config.Settle, the serving certificate is issued by the new one, and after a
// leaf's lifetime the old one leaves. Deleting the Secret is the way to force
// such a change.
//
// In ModeCertManager somebody else writes the Secret, and the bundles of webhooks;
// the keeper only reads, but for a ConfigMap, which nobody else would fill. Either
// way a certificate goes into service only when the bundles vouch for it, and time is
// the API server's (Clock), since that is who judges.
package certs
