// SPDX-License-Identifier: Apache-2.0

// Package preflight finds out whether this machine can run a cluster, before ten
// minutes are spent on building one, and says everything that is lacking at once.
//
// [Gather] collects facts; wherever possible it tries the thing itself, in
// namespaces of its own, instead of reading a version number. [Check] is a pure
// function from facts to a message.
package preflight
