// SPDX-License-Identifier: Apache-2.0

package specguard

import "time"

// Identity is an authenticated caller, as the API server names it.
type Identity struct {
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
}

// Operation is the admission operation of a write.
type Operation string

// The operations that are recorded.
const (
	OperationCreate Operation = "CREATE"
	OperationUpdate Operation = "UPDATE"
	OperationDelete Operation = "DELETE"
)

// WriteRecord is what the webhook saw of one write. It explains and never
// authorizes: a review is not yet a write, and anybody who reaches the port can
// send one. (UID, ResourceVersionBefore, HashAfter) names one write exactly.
type WriteRecord struct {
	UID         string    `json:"uid"`
	APIVersion  string    `json:"apiVersion"`
	Kind        string    `json:"kind"`
	Namespace   string    `json:"namespace"`
	Name        string    `json:"name"`
	Operation   Operation `json:"operation"`
	Subresource string    `json:"subresource,omitempty"`
	// ResourceVersionBefore is that of the object the write started from.
	ResourceVersionBefore string `json:"resourceVersionBefore,omitempty"`
	// Generation the object will have if the write succeeds; 0 when the review
	// does not say (/scale).
	Generation int64 `json:"generation,omitempty"`
	// HashAfter is the pl1 hash of the whole body after the write; empty for
	// /scale, where Replicas stands instead.
	HashAfter string `json:"hashAfter,omitempty"`
	Replicas  *int32 `json:"replicas,omitempty"`
	// Fields are the changed paths, at most 64, JSON Pointers with keyed list
	// elements as [name=app].
	Fields []string `json:"fields,omitempty"`
	Identity
	FieldManager string    `json:"fieldManager,omitempty"`
	Time         time.Time `json:"time"`
	// Authenticated says that the review came with the API server's client certificate.
	Authenticated bool `json:"authenticated,omitempty"`
}
