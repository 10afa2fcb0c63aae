// SPDX-License-Identifier: Apache-2.0

package effect

// Body is a state of the target: the guarded hash, and what tells one object and one version
// of its spec from another.
type Body struct {
	UID  string
	Hash string
	// Generation is 0 where the kind has none.
	Generation int64
}

// Live is what a look at the target has found.
type Live struct {
	// Read says whether the answer counts. A target that is gone was read.
	Read bool
	// Gone says that no object has the name.
	Gone bool
	Body
}

// Integrity says whether what was written is still there.
type Integrity string

// The states.
const (
	// IntegrityUnknown is a target that could not be read.
	IntegrityUnknown Integrity = "Unknown"
	// SpecUnchanged is a target as the write left it.
	SpecUnchanged Integrity = "SpecUnchanged"
	// SpecDrifted is a target that another writer has changed, removed or replaced since.
	SpecDrifted Integrity = "SpecDrifted"
)

// Compare holds the live target against the answer to the write. A body that changed under an
// unchanged generation was written by no user: a new version of Kubernetes has other defaults,
// or a new version of Plumbline another hash.
func Compare(written Body, live Live) Integrity {
	switch {
	case !live.Read || written.Hash == "":
		return IntegrityUnknown
	case live.Gone || live.UID != written.UID:
		return SpecDrifted
	case live.Hash == "":
		return IntegrityUnknown
	case live.Hash == written.Hash:
		return SpecUnchanged
	case live.Generation != 0 && live.Generation == written.Generation:
		return SpecUnchanged
	}
	return SpecDrifted
}
