// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Format is the API of a report.
type Format string

// The formats. Readers of the second one, which has the older API, move to the first one.
const (
	// OpenReports is Report of openreports.io/v1alpha1.
	OpenReports Format = "OpenReports"
	// PolicyReport is PolicyReport of wgpolicyk8s.io/v1alpha2.
	PolicyReport Format = "PolicyReport"
)

// Formats lists the formats.
func Formats() []Format { return []Format{OpenReports, PolicyReport} }

// Kind returns the kind that the objects of a format have.
func (f Format) Kind() schema.GroupVersionKind {
	if f == PolicyReport {
		return schema.GroupVersionKind{Group: "wgpolicyk8s.io", Version: "v1alpha2", Kind: "PolicyReport"}
	}
	return openreports.SchemeGroupVersion.WithKind("Report")
}

// Encode returns the object of a report in a format. A PolicyReport has its source in each
// result alone.
func (f Format) Encode(report *openreports.Report) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(report)
	if err != nil {
		return nil, fmt.Errorf("encoding the report of namespace %s: %w", report.Namespace, err)
	}
	object := &unstructured.Unstructured{Object: fields}
	object.SetGroupVersionKind(f.Kind())
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	if f == PolicyReport {
		delete(object.Object, "source")
	}
	return object, nil
}
