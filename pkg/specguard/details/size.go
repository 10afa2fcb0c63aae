// SPDX-License-Identifier: Apache-2.0

package details

import (
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// Bounds of one record, in bytes. The keys in an object, and so the paths to
// them, are as long as whoever wrote it made them; thousands of records wait in
// the webhook while Redis is away, and more are kept by the assessor.
const (
	maxPaths  = 8 << 10
	maxGroups = 4 << 10
	maxNames  = 4 << 10
)

// fullList is how many paths a record has at most; one that has as many may have
// touched anything (see specguard.WriteRecord).
const fullList = 64

// shorten keeps what fits of a record's lists. A cut list of paths is filled up,
// so that it reads as one that may have touched anything: a record must not
// accuse of less because its paths are long. Without a group its user is trusted
// less, if anything. The lists are copies: what is cut off is not held on to.
func shorten(rec *specguard.WriteRecord) {
	fields := slices.Clone(fitting(rec.Fields, maxPaths))
	if len(fields) < len(rec.Fields) {
		fields = append(fields, make([]string, max(0, fullList-len(fields)))...)
	}
	rec.Fields = fields
	rec.Groups = slices.Clone(fitting(rec.Groups, maxGroups))
}

// fitting are the first elements that have room together.
func fitting(list []string, room int) []string {
	for i, s := range list {
		if room -= len(s) + 16; room < 0 { // 16: the header of a Go string
			return list[:i:i]
		}
	}
	return list
}

// oversized says that a record is none of ours: names in Kubernetes are short.
func oversized(rec *specguard.WriteRecord) bool {
	names := 0
	for _, s := range []string{
		rec.UID, rec.APIVersion, rec.Kind, rec.Namespace, rec.Name, string(rec.Operation), rec.Subresource,
		rec.ResourceVersionBefore, rec.HashAfter, rec.User, rec.FieldManager,
	} {
		names += len(s)
	}
	return names > maxNames
}
