// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// LocalPort is a port of the proxy, on loopback, that leads to a Service.
type LocalPort struct {
	At uint16
	// Namespace is empty for that of the pod.
	Namespace, Service string
	// Port of the Service; 0 for its only HTTP port.
	Port uint16
}

// String is as it is written in the annotation.
func (p LocalPort) String() string {
	text := strconv.Itoa(int(p.At)) + "="
	if p.Namespace != "" {
		text += p.Namespace + "/"
	}
	text += p.Service
	if p.Port != 0 {
		text += ":" + strconv.Itoa(int(p.Port))
	}
	return text
}

const (
	// firstUnprivileged is the first port that needs no privilege.
	firstUnprivileged = 1024
	// maxLocalPorts bounds what one pod may ask for.
	maxLocalPorts = 100
	// maxWrong is how many mistakes are told: an annotation may have a hundred thousand.
	maxWrong = 10
)

// ParseLocalPorts reads "8001=web, 8002=pay/api:8080": local port = [namespace/]
// service[:port]. The result is sorted by local port. What cannot be had is left out,
// with the reason; after ten of that nothing more is read.
func ParseLocalPorts(text string) (ports []LocalPort, wrong []error) {
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		if len(wrong) == maxWrong {
			wrong = append(wrong, fmt.Errorf("%q, and the rest, is not read", shortened(entry)))
			break
		}
		p, err := localPort(entry)
		switch {
		case err != nil:
		case slices.ContainsFunc(ports, func(other LocalPort) bool { return other.At == p.At }):
			err = fmt.Errorf("%d is given away already", p.At)
		case len(ports) == maxLocalPorts:
			err = fmt.Errorf("there are more than %d", maxLocalPorts)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%q: %w", shortened(entry), err))
			continue
		}
		ports = append(ports, p)
	}
	slices.SortFunc(ports, func(a, b LocalPort) int { return cmp.Compare(a.At, b.At) })
	return ports, wrong
}

func localPort(entry string) (p LocalPort, err error) {
	at, target, found := strings.Cut(entry, "=")
	if !found {
		return p, errors.New("want local port=service, as in 8001=web or 8002=pay/api:8080")
	}
	if p.At, err = port(strings.TrimSpace(at)); err != nil {
		return p, err
	}
	switch {
	case p.At < firstUnprivileged:
		return p, fmt.Errorf("the proxy may not listen on %d: take one from %d on", p.At, firstUnprivileged)
	case slices.Contains([]uint16{AdminPort, CapturePort, StatusPort}, p.At):
		return p, fmt.Errorf("%d belongs to the proxy", p.At)
	}
	service, number, numbered := strings.Cut(strings.TrimSpace(target), ":")
	if numbered {
		if p.Port, err = port(number); err != nil {
			return p, err
		}
	}
	p.Service = service
	if namespace, name, two := strings.Cut(service, "/"); two {
		p.Namespace, p.Service = namespace, name
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			return p, fmt.Errorf("%q is no namespace", namespace)
		}
	}
	if len(validation.IsDNS1123Label(p.Service)) > 0 {
		return p, fmt.Errorf("%q is no name of a Service", p.Service)
	}
	return p, nil
}

// shortened keeps a message readable when what is wrong is that something is long.
func shortened(text string) string {
	if len(text) > 60 {
		return text[:60] + "..."
	}
	return text
}
