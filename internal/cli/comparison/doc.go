// SPDX-License-Identifier: Apache-2.0

// Package comparison reports the differences between two bodies of an object, with secrets
// redacted, as values for programs ([Change]) and as lines for people ([Writer]).
package comparison
