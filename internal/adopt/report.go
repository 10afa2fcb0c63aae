// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Report is what a Survey found. All lists are sorted; where one is cut, the
// count beside it is of all.
type Report struct {
	Guard string      `json:"guard"`
	From  metav1.Time `json:"from"`
	To    metav1.Time `json:"to"`
	// Objects that the guard would cover.
	Objects  int        `json:"objects"`
	Coverage []Coverage `json:"coverage"`
	// ExcludedNamespaces are never guarded, whatever a guard selects.
	ExcludedNamespaces []string `json:"excludedNamespaces"`
	// StampsProven is false where no stamp is taken as proof of who wrote.
	StampsProven bool         `json:"stampsProven"`
	LastWrites   []LastWrite  `json:"lastWrites"`
	Autoscaled   []Autoscaled `json:"autoscaled"`
	Writes       WriteCounts  `json:"writes"`
	// Drift are the recent writes that the proposal would not have let pass.
	Drift []Write `json:"drift"`
	// Undated are writes through /scale, which leave no time; they may be old.
	Undated   []Write     `json:"undated"`
	Benign    []Write     `json:"benign"`
	Undecided []Undecided `json:"undecided"`
	Proposal  Proposal    `json:"proposal"`
}

// SkipReason is why a guard passes over an object.
type SkipReason string

// The reasons.
const (
	// SkipExcluded: its namespace is never guarded.
	SkipExcluded SkipReason = "ExcludedNamespace"
	// SkipOwned: a built-in controller made it from an object that is judged itself.
	SkipOwned SkipReason = "MadeByController"
	// SkipNotSelected: the guard's selectors leave it out.
	SkipNotSelected SkipReason = "NotSelected"
)

// Coverage counts the objects of one kind in one namespace.
type Coverage struct {
	APIVersion string             `json:"apiVersion"`
	Kind       string             `json:"kind"`
	Namespace  string             `json:"namespace"`
	Objects    int                `json:"objects"`
	Skipped    map[SkipReason]int `json:"skipped,omitempty"`
	// Unregistered: the chart does not list the kind, so a guard on it would
	// not be ready.
	Unregistered bool `json:"unregistered,omitempty"`
}

// ObjectRef names an object.
type ObjectRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
}

// LastWrite is who wrote the content of an object last, as far as that is known.
type LastWrite struct {
	ObjectRef
	// User is empty when nothing tells.
	User string `json:"user,omitempty"`
	// KnownBy is WriterStamp, ManagedFields (the usual account of a known
	// manager) or None.
	KnownBy v1alpha1.ActorSource `json:"knownBy"`
	// Class is how that writer stands to the proposal.
	Class    v1alpha1.ActorClass `json:"class"`
	Managers []string            `json:"managers,omitempty"`
	At       *metav1.Time        `json:"at,omitempty"`
	// UnprovenStamp is a stamp that anybody could have written.
	UnprovenStamp string `json:"unprovenStamp,omitempty"`
}

// Autoscaled is an object that an autoscaler names as its target.
type Autoscaled struct {
	ObjectRef
	Autoscaler AutoscalerKind `json:"autoscaler"`
	By         string         `json:"by"`
	// Paths it moves in the object; none for an autoscaler that changes pods.
	Paths []string `json:"paths,omitempty"`
	// Seen says that managedFields show a write of it.
	Seen bool   `json:"seen"`
	Note string `json:"note,omitempty"`
}

// WriteCounts counts the recent writes of guarded content: entries of
// managedFields, of which there is one per object, manager and way of writing.
type WriteCounts struct {
	Total      int `json:"total"`
	Authorized int `json:"authorized"`
	Expected   int `json:"expected"`
	Benign     int `json:"benign"`
	Drift      int `json:"drift"`
	Undated    int `json:"undated"`
	// NotJudged were beyond the bound.
	NotJudged int `json:"notJudged,omitempty"`
}

// Write is one past write.
type Write struct {
	ObjectRef
	User      string                            `json:"user,omitempty"`
	KnownBy   v1alpha1.ActorSource              `json:"knownBy"`
	Class     v1alpha1.ActorClass               `json:"class"`
	Manager   string                            `json:"manager"`
	Operation metav1.ManagedFieldsOperationType `json:"operation"`
	// Subresource through which it was made.
	Subresource string       `json:"subresource,omitempty"`
	At          *metav1.Time `json:"at,omitempty"`
	// Created says that it made the object.
	Created bool `json:"created,omitempty"`
	// Paths that the manager owns and the proposal does not leave to it, at
	// most 32; which of them this write changed is not known.
	Paths      []string `json:"paths,omitempty"`
	PathsTotal int      `json:"pathsTotal"`
}

// Undecided is a writer about whom a person has to decide. It is not trusted
// as it stands.
type Undecided struct {
	// User of a proven stamp, else empty.
	User     string   `json:"user,omitempty"`
	Managers []string `json:"managers"`
	// Human says that a manager is one of a program that people write with.
	Human   bool         `json:"human,omitempty"`
	Objects int          `json:"objects"`
	Recent  int          `json:"recent"`
	Last    *metav1.Time `json:"last,omitempty"`
	Why     string       `json:"why"`
}

// Reason is why something stands in a proposal.
type Reason struct {
	// Field as in trustedWriters.serviceAccounts.
	Field string `json:"field"`
	Value string `json:"value"`
	Why   string `json:"why"`
}
