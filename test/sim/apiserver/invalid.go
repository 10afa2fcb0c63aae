// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var metadataPath = field.NewPath("metadata")

func requiredName() field.ErrorList {
	return field.ErrorList{field.Required(metadataPath.Child("name"), "name or generateName is required")}
}

func wrongName(name, why string) field.ErrorList {
	return field.ErrorList{field.Invalid(metadataPath.Child("name"), name, why)}
}

func versionRequired() field.ErrorList {
	return field.ErrorList{field.Invalid(metadataPath.Child("resourceVersion"), int64(0), "must be specified for an update")}
}

func uidOf(o Object) types.UID { return types.UID(metaString(o, "uid")) }

// invalid says what is wrong with a new state.
func (c *call) invalid(before, after Object) error {
	var wrong field.ErrorList
	if before != nil {
		if uid := metaString(after, "uid"); uid != metaString(before, "uid") {
			immutable := field.Invalid(metadataPath.Child("uid"), uid, "field is immutable")
			wrong = append(wrong, immutable)
			if c.resource.Custom { // the API server validates the metadata of a custom resource twice
				wrong = append(wrong, immutable)
			}
		}
	}
	var causes []metav1.StatusCause
	if c.resource.Validate != nil {
		causes = c.resource.Validate(before, after)
	}
	if len(wrong) == 0 && len(causes) == 0 {
		return nil
	}
	err := apierrors.NewInvalid(c.resource.groupKind(), c.name, wrong)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, causes...)
	for _, cause := range causes {
		err.ErrStatus.Message += " " + cause.Field + ": " + cause.Message
	}
	return err
}

// validateDeployment holds a Deployment against the two rules that writers of
// replicas and labels meet.
func validateDeployment(before, after Object) []metav1.StatusCause {
	var causes []metav1.StatusCause
	spec, _ := after["spec"].(map[string]any)
	if replicas, ok := spec["replicas"].(int64); ok && replicas < 0 {
		causes = append(causes, cause(field.Invalid(field.NewPath("spec", "replicas"), replicas, "must be greater than or equal to 0")))
	}
	if before == nil {
		return causes
	}
	old, _ := before["spec"].(map[string]any)
	if !same(old["selector"], spec["selector"]) {
		causes = append(causes, cause(field.Invalid(field.NewPath("spec", "selector"), spec["selector"], "field is immutable")))
	}
	return causes
}

func cause(e *field.Error) metav1.StatusCause {
	return metav1.StatusCause{Type: metav1.CauseType(e.Type), Message: e.ErrorBody(), Field: e.Field}
}
