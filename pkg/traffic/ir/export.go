// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ExportToAnnotation of a Service, or of a namespace for all its Services that have none,
// names the other namespaces whose proxies may know the Service: "*" for all of them, or
// names separated by commas. Without the annotation no other namespace knows it.
const ExportToAnnotation = "plumbline.dev/export-to"

// MaxExports is how many namespaces one annotation may name.
const MaxExports = 100

// everyNamespace stands for all namespaces.
const everyNamespace = "*"

// Export says which other namespaces know a Service. The zero Export is to none.
type Export struct {
	All bool
	// Namespaces are sorted; empty with All.
	Namespaces []string
}

// KnownTo says whether proxies of a namespace may know a service.
func (s Service) KnownTo(namespace string) bool {
	if s.Export.All || namespace == s.Namespace {
		return true
	}
	_, named := slices.BinarySearch(s.Export.Namespaces, namespace)
	return named
}

// ParseExport reads the annotation. With an error the result is the zero Export: one
// wrong entry exports to no namespace.
func ParseExport(annotation string) (Export, error) {
	var names []string
	for entry := range strings.SplitSeq(annotation, ",") {
		entry = strings.TrimSpace(entry)
		switch {
		case entry == "":
		case entry != everyNamespace && len(validation.IsDNS1123Label(entry)) > 0:
			return Export{}, fmt.Errorf("annotation %s: %q is no name of a namespace: write names separated by commas, or %q for all namespaces", ExportToAnnotation, short(entry), everyNamespace)
		case len(names) == MaxExports:
			return Export{}, fmt.Errorf("annotation %s: more than %d namespaces are named: write %q for all namespaces, or fewer names", ExportToAnnotation, MaxExports, everyNamespace)
		default:
			names = append(names, entry)
		}
	}
	if !slices.Contains(names, everyNamespace) {
		slices.Sort(names)
		return Export{Namespaces: slices.Compact(names)}, nil
	}
	if len(names) > 1 {
		return Export{}, fmt.Errorf("annotation %s: %q stands for all namespaces: write it alone, or take it out", ExportToAnnotation, everyNamespace)
	}
	return Export{All: true}, nil
}

// readExports reads the annotations of namespaces.
func (b *builder) readExports() {
	for namespace, annotation := range b.in.Exports {
		export, err := ParseExport(annotation)
		if err != nil {
			b.warn(Object{Kind: "Namespace", Name: namespace}, InvalidExport, err.Error())
		}
		b.exports[namespace] = export
	}
}

// export of a Service: what its own annotation says, or else that of its namespace.
func (b *builder) export(svc *corev1.Service) Export {
	annotation, own := svc.Annotations[ExportToAnnotation]
	if !own {
		return b.exports[svc.Namespace]
	}
	export, err := ParseExport(annotation)
	if err != nil {
		b.warn(serviceObject(svc), InvalidExport, err.Error())
	}
	return export
}
