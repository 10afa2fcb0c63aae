// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Bounds of object names: a DNS subdomain has at most 253 characters; a longer
// name keeps this many and ends in a digest of the whole.
const (
	maxNameBytes  = 253
	keptNameBytes = 200
	digestBytes   = 8
)

// BaselineName is the name of the Baseline of one object: resource is the plural
// in lower case ("deployments"), group may be empty for the core group, which is
// written "core". Names over 253 bytes keep 200 and end in a digest.
//
// A name with dots has a digest before it. Without, "example.org.web" of the
// group apps and "web" of the group apps.example.org would have one Baseline, and
// whoever came second would not be guarded.
func BaselineName(resource, group, name string) string {
	if group == "" {
		group = "core"
	}
	if strings.Contains(name, ".") {
		sum := sha256.Sum256([]byte(resource + "/" + group + "/" + name))
		name = hex.EncodeToString(sum[:digestBytes]) + "." + name
	}
	return BoundName(resource + "." + group + "." + name)
}

// RevisionName is the name of the BaselineRevision that holds the authorized
// body with that number.
func RevisionName(baseline string, number int64) string {
	return BoundName(baseline + "-" + strconv.FormatInt(number, 10))
}

// BoundName returns a name of at most 253 bytes: a longer one keeps 200 and ends in a digest.
func BoundName(name string) string {
	if len(name) <= maxNameBytes {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:keptNameBytes] + "-" + hex.EncodeToString(sum[:digestBytes])
}
