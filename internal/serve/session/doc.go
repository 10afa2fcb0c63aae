// SPDX-License-Identifier: Apache-2.0

// Package session keeps values of a browser in cookies that the browser can neither read nor change.
//
//	value ──▶ Keys.Write ──▶ AES-GCM, bound to purpose and end ──▶ __Host- cookies
//	cookies ──▶ Read ──▶ value, or none
//
// Replicas share the keys, so a browser may ask any of them. The first key seals, and older keys still open. A
// value of an unknown key, of another purpose, after its end, or with one changed bit is no value.
package session
