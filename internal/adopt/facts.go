// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Bounds of what a Survey keeps and a Report lists; counts are always exact.
const (
	// MaxRows bounds the objects that are listed one by one.
	MaxRows = 10_000
	// MaxWrites bounds the recent writes that are judged one by one; of those
	// beyond it only the number is known.
	MaxWrites = 10_000
	// maxPaths are kept of one write.
	maxPaths = 32
	// maxWriters bounds the different writers that are told apart.
	maxWriters = 1_000
	// maxManagers are named of one writer.
	maxManagers = 8
)

// GuardKind is SpecGuard or ClusterSpecGuard.
type GuardKind string

// The kinds of guards.
const (
	SpecGuard        GuardKind = "SpecGuard"
	ClusterSpecGuard GuardKind = "ClusterSpecGuard"
)

// Draft is the guard to begin with: what it selects, and whom it trusts already.
type Draft struct {
	Kind GuardKind
	// Namespace is empty for a ClusterSpecGuard.
	Namespace, Name string
	Spec            v1alpha1.ClusterGuardSpec
	// Existing says that the cluster has it. Its mode is then kept; a new guard
	// begins with Audit.
	Existing bool
}

// Question is what a Survey is about, and what is known before any object is read.
type Question struct {
	Draft Draft
	Now   time.Time
	// Since is how far back writes are judged; positive.
	Since        time.Duration
	Installation Installation
	// NamespaceLabels are needed for a draft with a namespaceSelector.
	NamespaceLabels map[string]map[string]string
	Autoscalers     []Autoscaler
}

// Installation is what is known of Plumbline in this cluster.
type Installation struct {
	// Excluded namespaces are never guarded.
	Excluded []string
	// StampedSince is when the policy that stamps writers inside the API server
	// was made; zero if there is none or it could not be read. Stamps of older
	// writes prove nothing.
	StampedSince time.Time
	// Registered are the kinds whose writes are seen at admission, by group and
	// kind; nil if that is not known.
	Registered map[GroupKind]bool
}

// GroupKind names a kind without its version.
type GroupKind struct{ Group, Kind string }

func groupKind(gvk canon.GVK) GroupKind { return GroupKind{gvk.Group, gvk.Kind} }

// AutoscalerKind is the kind of an object that moves fields of other objects.
type AutoscalerKind string

// The autoscalers that are known.
const (
	HorizontalPodAutoscaler AutoscalerKind = "HorizontalPodAutoscaler"
	ScaledObject            AutoscalerKind = "ScaledObject"
	VerticalPodAutoscaler   AutoscalerKind = "VerticalPodAutoscaler"
)

// Autoscaler is one autoscaler and the object that it names as its target.
type Autoscaler struct {
	Kind            AutoscalerKind
	Namespace, Name string
	Target          GroupKind
	TargetName      string
}

// Existence is whether a service account is there; a failed read is
// ExistenceUnknown, which is the zero value.
type Existence int

// The three results of a read.
const (
	ExistenceUnknown Existence = iota
	Exists
	Absent
)

// Accounts tell of service accounts whether they exist; one that is missing
// from the map is unknown.
type Accounts map[v1alpha1.ServiceAccountReference]Existence
