// SPDX-License-Identifier: Apache-2.0

package severity

import (
	"cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// rank orders the levels from mild to severe; 0 is no level at all.
func rank(l v1alpha1.SeverityLevel) int {
	switch l {
	case v1alpha1.SeverityInfo:
		return 1
	case v1alpha1.SeverityLow:
		return 2
	case v1alpha1.SeverityMedium:
		return 3
	case v1alpha1.SeverityHigh:
		return 4
	case v1alpha1.SeverityCritical:
		return 5
	default:
		return 0
	}
}

// CompareLevels is negative when a is milder than b, 0 when they are equal and
// positive when a is more severe. No level and an unknown one are the mildest.
func CompareLevels(a, b v1alpha1.SeverityLevel) int {
	return cmp.Compare(rank(a), rank(b))
}

// higher of two levels.
func higher(a, b v1alpha1.SeverityLevel) v1alpha1.SeverityLevel {
	if CompareLevels(a, b) < 0 {
		return b
	}
	return a
}

// lower is the next milder level; Info stays.
func lower(l v1alpha1.SeverityLevel) v1alpha1.SeverityLevel {
	switch l {
	case v1alpha1.SeverityCritical:
		return v1alpha1.SeverityHigh
	case v1alpha1.SeverityHigh:
		return v1alpha1.SeverityMedium
	case v1alpha1.SeverityMedium:
		return v1alpha1.SeverityLow
	case v1alpha1.SeverityLow, v1alpha1.SeverityInfo:
		return v1alpha1.SeverityInfo
	default:
		return l
	}
}

// Floor is the lowest level that a finding of the class has in an Environment
// of the criticality, or empty where there is none.
func Floor(class v1alpha1.FindingClass, criticality v1alpha1.Criticality) v1alpha1.SeverityLevel {
	switch criticality {
	case v1alpha1.CriticalityProduction:
		return classFloor(class)
	case v1alpha1.CriticalityStaging:
		return lower(classFloor(class))
	case v1alpha1.CriticalityDevelopment, v1alpha1.CriticalityOther:
		return ""
	default:
		return ""
	}
}

// classFloor is the floor in Production. What was touched decides, not how: an
// object that is gone took its containers with it; one that nobody authorized
// runs an image that nobody vouched for; a difference that fits no class is not
// known to be cosmetic.
func classFloor(class v1alpha1.FindingClass) v1alpha1.SeverityLevel {
	switch class {
	case v1alpha1.ClassObjectMissing, v1alpha1.ClassContainerMissing, v1alpha1.ClassImageRepository:
		return v1alpha1.SeverityCritical
	case v1alpha1.ClassObjectUnexpected, v1alpha1.ClassImageVersion, v1alpha1.ClassExecution, v1alpha1.ClassSecurity:
		return v1alpha1.SeverityHigh
	case v1alpha1.ClassNetworking, v1alpha1.ClassStorage, v1alpha1.ClassScale:
		return v1alpha1.SeverityMedium
	case v1alpha1.ClassResources, v1alpha1.ClassOther:
		return v1alpha1.SeverityLow
	case v1alpha1.ClassTemplateMetadata:
		return v1alpha1.SeverityInfo
	default:
		return v1alpha1.SeverityLow
	}
}

// Worst is the most severe of the severities: the highest level, then the
// highest score, then the first; nil when there is none.
func Worst(severities ...v1alpha1.Severity) *v1alpha1.Severity {
	var worst *v1alpha1.Severity
	for i := range severities {
		if worst == nil || Compare(severities[i], *worst) > 0 {
			worst = &severities[i]
		}
	}
	return worst.DeepCopy()
}

// Compare is negative when a is milder than b, 0 when they are equally severe
// and positive when a is more severe: by level, then by score.
func Compare(a, b v1alpha1.Severity) int {
	return cmp.Or(CompareLevels(a.Level, b.Level), cmp.Compare(a.Score, b.Score))
}

// Escalated says whether a drift is worse than when it was first seen: its level is
// higher, or the band of its score is. The level alone does not show that: a floor holds
// it where the score comes only later. Without a first score the level decides.
func Escalated(s *v1alpha1.Severity) bool {
	if CompareLevels(s.Level, s.First) > 0 {
		return true
	}
	return s.FirstScore != nil && CompareLevels(Band(s.Score), Band(*s.FirstScore)) > 0
}
