// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"fmt"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Annotations of a Service that say how proxies send requests to it.
const (
	// RequestTimeoutAnnotation bounds a request, its retries included. The time begins when the
	// proxy has the whole request, and ends with the answer.
	RequestTimeoutAnnotation = "plumbline.dev/request-timeout"
	// IdleTimeoutAnnotation says how long a proxy keeps a connection to an endpoint that has no
	// request.
	IdleTimeoutAnnotation = "plumbline.dev/idle-timeout"
	// ConnectTimeoutAnnotation bounds an attempt to connect to an endpoint.
	ConnectTimeoutAnnotation = "plumbline.dev/connect-timeout"
	// RetriesAnnotation with the value "off" has proxies send no request a second time.
	RetriesAnnotation = "plumbline.dev/retries"
)

// Settings are what the annotations of a Service say. A time of 0 is the proxy's default.
type Settings struct {
	RequestTimeout, IdleTimeout, ConnectTimeout time.Duration
	RetriesOff                                  bool
}

// duration is that of the Gateway API (https://gateway-api.sigs.k8s.io/geps/gep-2257/).
var duration = regexp.MustCompile(`^([0-9]{1,5}(h|m|s|ms)){1,4}$`)

// bounds of a time, and how a message writes them.
type bounds struct {
	least, most time.Duration
	text        string
}

// settings reads the annotations. Of a value that makes no sense the default is in force.
func (b *builder) settings(svc *corev1.Service) Settings {
	refuse := func(annotation, want string) {
		b.warn(serviceObject(svc), InvalidSetting, fmt.Sprintf("the annotation %s has %q, so the default is active: %s",
			annotation, short(svc.Annotations[annotation]), want))
	}
	timeout := func(annotation string, within bounds) time.Duration {
		text, given := svc.Annotations[annotation]
		if !given {
			return 0
		}
		d, err := time.ParseDuration(text)
		if err != nil || !duration.MatchString(text) || d < within.least || d > within.most {
			refuse(annotation, "set "+within.text+", as in 1s500ms, or take it out")
			return 0
		}
		return d
	}
	s := Settings{
		RequestTimeout: timeout(RequestTimeoutAnnotation, bounds{100 * time.Millisecond, 24 * time.Hour, "100ms to 24h"}),
		IdleTimeout:    timeout(IdleTimeoutAnnotation, bounds{100 * time.Millisecond, time.Hour, "100ms to 1h"}),
		ConnectTimeout: timeout(ConnectTimeoutAnnotation, bounds{50 * time.Millisecond, 30 * time.Second, "50ms to 30s"}),
	}
	switch value, given := svc.Annotations[RetriesAnnotation]; {
	case value == "off":
		s.RetriesOff = true
	case given && value != "on":
		refuse(RetriesAnnotation, "set on or off, or take it out")
	}
	return s
}
