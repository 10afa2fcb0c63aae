// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Result says how a round ended.
type Result string

// The results, from good to bad.
const (
	// ResultFound: found, and the self-test was named as its author.
	ResultFound Result = "found"
	// ResultUnnamed: found, and somebody else or nobody was named.
	ResultUnnamed Result = "unnamed"
	// ResultNotFound: not in the Baseline when the deadline passed.
	ResultNotFound Result = "not_found"
	// ResultError: the self-test itself could not read or write.
	ResultError Result = "error"
)

// Results lists all results, for metrics that exist from the start.
func Results() []Result { return []Result{ResultFound, ResultUnnamed, ResultNotFound, ResultError} }

// Stamps says which marks admission left on the self-test's write.
type Stamps struct {
	// Hash: the webhook stamped the hash of exactly this content.
	Hash bool
	// Writer: the self-test's user was stamped.
	Writer bool
}

// JudgeStamps looks at the object as the API server stored it.
func JudgeStamps(stored []byte, user string) (Stamps, error) {
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(stored, &object); err != nil {
		return Stamps{}, fmt.Errorf("decoding the self-test's object: %w", err)
	}
	hash, err := canon.HashBody(stored, deployments)
	if err != nil {
		return Stamps{}, fmt.Errorf("hashing the self-test's object: %w", err)
	}
	return Stamps{
		Hash:   object.Annotations[v1alpha1.AnnotationSpecHash] == string(hash),
		Writer: object.Annotations[v1alpha1.AnnotationWriter] == user,
	}, nil
}

// Seen is what a Baseline says of one path.
type Seen int

// The steps of being seen.
const (
	SeenNot Seen = iota
	SeenUnnamed
	SeenNamed
)

// JudgeFinding looks for the finding at a path, made by a user.
func JudgeFinding(b *v1alpha1.Baseline, path, user string) Seen {
	if b.Status.State != v1alpha1.StateDrifted {
		return SeenNot
	}
	for i := range b.Status.Findings {
		if f := &b.Status.Findings[i]; f.Path == path {
			if f.Actor.User == user {
				return SeenNamed
			}
			return SeenUnnamed
		}
	}
	return SeenNot
}

// away lists the knobs of an object that are not at rest; absent is 0.
func away(stored []byte) ([]knob, error) {
	var object struct {
		Spec map[string]json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(stored, &object); err != nil {
		return nil, fmt.Errorf("decoding the self-test's object: %w", err)
	}
	var moved []knob
	for _, f := range knobs {
		value := "0"
		if raw, ok := object.Spec[f.name]; ok {
			value = string(raw)
		}
		if value != strconv.FormatInt(f.rest, 10) {
			moved = append(moved, f)
		}
	}
	return moved, nil
}

func decodeBaseline(raw []byte) (*v1alpha1.Baseline, error) {
	b := &v1alpha1.Baseline{}
	if err := json.Unmarshal(raw, b); err != nil {
		return nil, fmt.Errorf("decoding the self-test's baseline: %w", err)
	}
	return b, nil
}
