// SPDX-License-Identifier: Apache-2.0

// Package releaserecord has the executor leave signed records of releases: of each decision, of each
// intent of a ReleaseWork that makes the cluster do more, and of the end of each ReleaseWork.
//
//	ABRelease, ReleaseWork ──▶ Reconciler ──▶ cursors of the chain, then a live read ──▶ record.Next
//	                               │                                                        │
//	     releasework ◀── wake ─────┴──── records appended, head kept in the ledger ◀────────┘
//
// What is missing is decided by package record, from the records themselves and from what is stored. So
// an executor that dies at any write leaves the rest to the next one. One worker writes one record after
// another. The controller of ReleaseWorks asks what is recorded, and never waits for the store.
package releaserecord
