// SPDX-License-Identifier: Apache-2.0

package bucket

// Reason of an error, for answers that a server gives too slowly for a test.
var Reason = reason
