// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// options are what a pod asks for in its annotations, over those of the installation.
type options struct {
	concurrency  int
	resources    corev1.ResourceRequirements
	excludePorts []uint16
	excludeCIDRs []netip.Prefix
}

const (
	maxConcurrency = 64
	maxExclusions  = 64
)

// leastMemory: below it an Envoy that does nothing is killed.
const leastMemory = "96Mi"

func optionsOf(pod *corev1.Pod, c Config) (options, error) {
	o := options{concurrency: c.Concurrency}
	if value, ok := pod.Annotations[AnnotationConcurrency]; ok {
		var err error
		if o.concurrency, err = strconv.Atoi(value); err != nil {
			return options{}, fmt.Errorf("annotation %s: %q is no number", AnnotationConcurrency, value)
		}
		if err := checkConcurrency(o.concurrency); err != nil {
			return options{}, fmt.Errorf("annotation %s: %w", AnnotationConcurrency, err)
		}
	}
	var err error
	if o.resources, err = resourcesOf(pod, c.Resources); err != nil {
		return options{}, err
	}
	if o.excludePorts, err = list(pod, AnnotationExcludePorts, port, cmp.Compare[uint16]); err != nil {
		return options{}, err
	}
	o.excludeCIDRs, err = list(pod, AnnotationExcludeCIDRs, prefix, netip.Prefix.Compare)
	return o, err
}

func checkConcurrency(n int) error {
	if n < 1 || n > maxConcurrency {
		return fmt.Errorf("%d worker threads are not 1 to %d", n, maxConcurrency)
	}
	return nil
}

func resourcesOf(pod *corev1.Pod, base corev1.ResourceRequirements) (corev1.ResourceRequirements, error) {
	r := *base.DeepCopy()
	if pod.Spec.Resources != nil {
		// The proxy lives on what the whole pod has; what it requested besides might
		// be more than that, and the pod invalid.
		r = corev1.ResourceRequirements{}
	}
	for _, from := range []struct {
		annotation string
		name       corev1.ResourceName
		to         *corev1.ResourceList
	}{
		{AnnotationCPU, corev1.ResourceCPU, &r.Requests},
		{AnnotationCPULimit, corev1.ResourceCPU, &r.Limits},
		{AnnotationMemory, corev1.ResourceMemory, &r.Requests},
		{AnnotationMemoryLimit, corev1.ResourceMemory, &r.Limits},
	} {
		value, ok := pod.Annotations[from.annotation]
		if !ok {
			continue
		}
		quantity, err := resource.ParseQuantity(value)
		if err != nil || quantity.Sign() <= 0 {
			return r, fmt.Errorf("annotation %s: %q is no quantity above zero", from.annotation, value)
		}
		if *from.to == nil {
			*from.to = corev1.ResourceList{}
		}
		(*from.to)[from.name] = quantity
	}
	return r, checkResources(r)
}

func checkResources(r corev1.ResourceRequirements) error {
	if limit, ok := r.Limits[corev1.ResourceMemory]; ok && limit.Cmp(resource.MustParse(leastMemory)) < 0 {
		return fmt.Errorf("a memory limit of %s is not enough for the proxy, which needs %s", &limit, leastMemory)
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		limit, limited := r.Limits[name]
		if request := r.Requests[name]; limited && limit.Cmp(request) < 0 {
			return fmt.Errorf("the proxy requests %s of %s, over its limit of %s", &request, name, &limit)
		}
	}
	return nil
}

// keepGuaranteed requests all that the proxy may use when the rest of the pod does
// so: another class of service would change how the application is scheduled, pinned
// and killed.
func keepGuaranteed(pod *corev1.Pod, r corev1.ResourceRequirements) corev1.ResourceRequirements {
	for container := range containers(pod) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			limit, limited := container.Resources.Limits[name]
			request, requested := container.Resources.Requests[name]
			// An absent request is the limit.
			if !limited || limit.IsZero() || requested && request.Cmp(limit) != 0 {
				return r
			}
		}
	}
	for name, limit := range r.Limits {
		if _, requested := r.Requests[name]; requested {
			r.Requests[name] = limit
		}
	}
	return r
}

// list reads a list with commas, in order and without doubles, so that what means the
// same is written the same.
func list[T comparable](pod *corev1.Pod, annotation string, one func(string) (T, error), order func(a, b T) int) ([]T, error) {
	value := strings.TrimSpace(pod.Annotations[annotation])
	if value == "" {
		return nil, nil
	}
	var out []T
	for text := range strings.SplitSeq(value, ",") {
		item, err := one(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("annotation %s: %w", annotation, err)
		}
		out = append(out, item)
	}
	if len(out) > maxExclusions {
		return nil, fmt.Errorf("annotation %s: %d entries are more than %d", annotation, len(out), maxExclusions)
	}
	slices.SortFunc(out, order)
	return slices.Compact(out), nil
}

func port(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is no port", text)
	}
	return uint16(n), nil
}

func prefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is no range of addresses, as in 10.0.0.0/8", text)
	}
	return p.Masked(), nil
}
