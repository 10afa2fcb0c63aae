// SPDX-License-Identifier: Apache-2.0

// Package record says which signed records of a release are still to be written: one for each
// decision, which is a line of the history in its status, one for each intent of a ReleaseWork that
// makes the cluster do more, and one for the end of each ReleaseWork.
//
// The writer remembers nothing but the records. [Cursors] say how far the records of a chain tell of
// each release. [Cursors.Apply] goes on from one record to the next, so the records of a chain give
// its cursors, and each [SnapshotEvery] records one names a body with the cursors before it. A writer
// that dies at any write leaves a chain from which the next writer knows what is missing.
//
// [Next] compares a cursor with what is stored now. All that a record tells is stored before, in the
// status of the release or of the work.
package record
