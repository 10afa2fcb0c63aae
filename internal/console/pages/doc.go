// SPDX-License-Identifier: Apache-2.0

// Package pages answers requests of a browser: it reads what a page needs with the rights of the
// caller, and has package view make the HTML.
//
//	request ──▶ Pages ──▶ Cluster ──▶ view
//	form ──▶ Pages ──▶ REST API ──▶ 303 to the page
//
// A form is a request to the REST API of the same process, which writes with the rights of the caller. One that
// is refused is shown again, with the values of the caller and the reason of the refusal.
//
// What could not be read is said on the page, in the words of the problems of the REST API. A page
// whose own objects could not be read is refused with the status of that problem.
package pages
