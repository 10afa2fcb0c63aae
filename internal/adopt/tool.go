// SPDX-License-Identifier: Apache-2.0

package adopt

// Tool names the GitOps tool of a field manager: one that puts objects back to
// what is in Git by itself. It is empty for all others, Helm included.
func Tool(manager string) string { return deployers[manager].tool }
