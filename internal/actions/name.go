// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// NameObject names an object as kubectl does: deployment.apps/web.
func NameObject(kind schema.GroupKind, name string) string {
	return strings.ToLower(kind.String()) + "/" + name
}

// NameTarget names the object that a Baseline or a plan is about, as [NameObject] does.
func NameTarget(t *v1alpha1.BaselineTarget) string {
	return NameObject(schema.FromAPIVersionAndKind(t.APIVersion, t.Kind).GroupKind(), t.Name)
}

// HashDigits is the number of digits of a hash that tell two hashes apart for a person.
const HashDigits = 12

// ShortenHash keeps the algorithm and the first [HashDigits] digits: pl1:1f2e3d4c5b6a.
func ShortenHash(hash string) string {
	algorithm, digits, found := strings.Cut(hash, "sha256:")
	if !found || len(digits) <= HashDigits {
		return hash
	}
	return algorithm + digits[:HashDigits]
}
