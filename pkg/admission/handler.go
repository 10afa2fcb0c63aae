// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"time"
)

// HandlerConfig is what the handlers of one server share.
type HandlerConfig struct {
	Metrics *Metrics
	Log     *slog.Logger
	// Limits bounds the work in progress of all of them together.
	Limits *Limits
	// Authenticated tells whether a request came with the API server's client
	// certificate; nil: none does.
	Authenticated func(*http.Request) bool
}

// handler puts a judge behind HTTP.
type handler struct {
	name  string
	judge func(context.Context, *Review) Answer
	cfg   HandlerConfig
	// closed lets nothing pass unjudged.
	closed bool
}

// NewHandler serves AdmissionReviews with judge.
// name is the handler's label in metrics. Whatever happens, the API server gets
// an answer that allows, as long as the review's uid could be read; without it
// no answer would be accepted, and the status says what was wrong.
func NewHandler(name string, judge func(*Review) Answer, cfg HandlerConfig) http.Handler {
	return &handler{name: name, cfg: cfg, judge: func(_ context.Context, r *Review) Answer { return judge(r) }}
}

// NewFailClosed is NewHandler for what must not happen unjudged: every answer that
// would be "unassessed" denies instead, with what the writer can do about it.
func NewFailClosed(name string, judge func(context.Context, *Review) Answer, cfg HandlerConfig) http.Handler {
	return &handler{name: name, cfg: cfg, judge: judge, closed: true}
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	start := time.Now()
	gauge := h.cfg.Metrics.inFlight.WithLabelValues(h.name)
	gauge.Inc()
	defer gauge.Dec()
	// The deadline ends with the request: net/http sets another one afterwards.
	_ = http.NewResponseController(w).SetReadDeadline(start.Add(bodyTimeout)) // Only a test's writer has none.
	review, answer, free := h.assess(req)
	defer free()
	if h.closed && answer.Verdict == VerdictUnassessed {
		answer = denied(&answer)
	}
	h.write(w, review, &answer)
	h.cfg.Metrics.observe(h.name, review.Operation, &answer, time.Since(start))
	h.logUnassessed(req, review, &answer)
}

// assess reads, decodes and judges. free must be called when the review, which
// points into a buffer, is no longer used.
func (h *handler) assess(req *http.Request) (review *Review, answer Answer, free func()) {
	review, free = &Review{}, func() {}
	defer func() {
		if cause := recover(); cause != nil {
			answer = Unassessed(ReasonPanic, fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
		}
	}()
	if err := checkRequest(req); err != nil {
		return review, Unassessed(ReasonContentType, err), free
	}
	place := h.cfg.Limits.enter(req.RemoteAddr)
	if place == nil {
		review = readPrefix(req.Body)
		discard(req.Body)
		return review, Unassessed(ReasonShed, nil), free
	}
	defer place.leave()
	body, err := readBody(req.Body, req.ContentLength, place)
	free = body.free
	if err != nil {
		review, _ = decodeReview(body.bytes) // As much as came; the reason is known already.
		return review, refuseBody(req.Body, err), free
	}
	if review, err = decodeReview(body.bytes); err != nil {
		return review, Unassessed(reasonOf(err), err), free
	}
	review.Authenticated = h.cfg.Authenticated != nil && h.cfg.Authenticated(req)
	return review, h.judge(req.Context(), review), free
}

// refuseBody is the answer to a body that was not read to its end.
func refuseBody(rest io.Reader, err error) Answer {
	switch {
	case errors.Is(err, errTooLarge):
		discard(rest)
		return Unassessed(ReasonTooLarge, err)
	case errors.Is(err, errNoRoom):
		discard(rest)
		return Unassessed(ReasonShed, nil)
	default:
		return Unassessed(ReasonReadFailed, err)
	}
}

// errContentType says that a request is no JSON POST.
var errContentType = errors.New("not a POST of application/json")

func checkRequest(req *http.Request) error {
	mediaType, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if req.Method != http.MethodPost || err != nil || mediaType != "application/json" {
		return errContentType
	}
	return nil
}

// write answers. Without a uid there is nothing that the API server would take.
func (h *handler) write(w http.ResponseWriter, review *Review, answer *Answer) {
	if review.UID == "" {
		http.Error(w, string(answer.Verdict)+": "+string(answer.Reason), statusOf(answer.Reason))
		return
	}
	raw, err := answer.encode(review.UID)
	if err != nil {
		http.Error(w, "no answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(raw) // The API server may have hung up; it counts that itself.
}

func statusOf(reason Reason) int {
	switch reason {
	case ReasonContentType:
		return http.StatusUnsupportedMediaType
	case ReasonTooLarge:
		return http.StatusRequestEntityTooLarge
	case ReasonShed, ReasonNoSnapshot:
		return http.StatusServiceUnavailable
	case ReasonPanic:
		return http.StatusInternalServerError
	default:
		return http.StatusBadRequest
	}
}

// logUnassessed leaves a trace of what was not judged. Shed reviews are only
// counted: they come in thousands.
func (h *handler) logUnassessed(req *http.Request, review *Review, answer *Answer) {
	unjudged := answer.Verdict == VerdictUnassessed || answer.Verdict == VerdictDenied
	if !unjudged || answer.Reason == ReasonShed {
		return
	}
	level := slog.LevelWarn
	if answer.Reason == ReasonPanic {
		level = slog.LevelError
	}
	attrs := []slog.Attr{
		slog.String("handler", h.name), slog.String("reason", string(answer.Reason)),
		slog.String("operation", operationLabel(review.Operation)), slog.String("kind", review.Kind.Kind),
		slog.String("namespace", review.Namespace), slog.String("name", review.Name),
	}
	if answer.Err != nil {
		attrs = append(attrs, slog.String("error", answer.Err.Error()))
	}
	h.cfg.Log.LogAttrs(req.Context(), level, "admission."+string(answer.Verdict), attrs...)
}
