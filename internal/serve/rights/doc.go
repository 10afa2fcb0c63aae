// SPDX-License-Identifier: Apache-2.0

// Package rights knows the rights of users, by SubjectAccessReviews of the API server.
//
// A right is asked for all namespaces first, and then for one. An answer is remembered for ten seconds by the user
// (name, uid, groups and extra), verb, kind, namespace and name. A right that cannot be asked for is an error, and
// never granted.
package rights
