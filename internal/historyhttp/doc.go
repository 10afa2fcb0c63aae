// SPDX-License-Identifier: Apache-2.0

// Package historyhttp shows the last hour of the runs of a release: the counts of its variations, and the looks
// of the judge.
//
//	GET /history/{namespace}/{name}/{uid}
//
// [Routes] answers and [Client] asks. The port, the way to it and its bounds are those of package proxieshttp. The
// replica that leads has the history, and the others say that they do not lead. An answer has numbers and the names
// of variations, and at most a few thousand values.
package historyhttp
