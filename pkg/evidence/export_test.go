// SPDX-License-Identifier: Apache-2.0

package evidence

// PreAuth is what is signed, for tests that sign something else than a record.
var PreAuth = preAuth
