// SPDX-License-Identifier: Apache-2.0

package invocation

// WaitingWidth is the number of characters that a table shows of a cause of waiting without -o wide.
const WaitingWidth = 60
