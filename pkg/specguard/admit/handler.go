// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"bytes"
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
	// MaxConcurrent bounds the reviews that one handler works on at once.
	MaxConcurrent int
	// Authenticated tells whether a request came with the API server's client
	// certificate; nil: none does.
	Authenticated func(*http.Request) bool
}

// handler puts a judge behind HTTP.
type handler struct {
	name  string
	judge func(*Review) Answer
	cfg   HandlerConfig
	limit *limiter
}

// NewHandler serves AdmissionReviews with judge, one of a Reviewer's methods.
// name is the handler's label in metrics. Whatever happens, the API server gets
// an answer that allows, as long as the review's uid could be read; without it
// no answer would be accepted, and the status says what was wrong.
func NewHandler(name string, judge func(*Review) Answer, cfg HandlerConfig) http.Handler {
	return &handler{name: name, judge: judge, cfg: cfg, limit: newLimiter(cfg.MaxConcurrent)}
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	start := time.Now()
	gauge := h.cfg.Metrics.inFlight.WithLabelValues(h.name)
	gauge.Inc()
	defer gauge.Dec()
	review, answer, free := h.assess(req)
	defer free()
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
			answer = unassessed(ReasonPanic, fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
		}
	}()
	if err := checkRequest(req); err != nil {
		return review, unassessed(ReasonContentType, err), free
	}
	leave, ok := h.limit.enter(req.ContentLength)
	if !ok {
		review, err := readPrefix(req.Body)
		return review, unassessed(ReasonShed, err), free
	}
	defer leave()
	buf, err := readBody(req.Body, req.ContentLength)
	free = func() { freeBody(buf) }
	if err != nil {
		review, _ = decodeReview(buf.Bytes()) // As much as came; the reason is known already.
		reason := ReasonReadFailed
		if errors.Is(err, errTooLarge) {
			reason = ReasonTooLarge
		}
		return review, unassessed(reason, err), free
	}
	if review, err = decodeReview(buf.Bytes()); err != nil {
		return review, unassessed(reasonOf(err), err), free
	}
	review.Authenticated = h.cfg.Authenticated != nil && h.cfg.Authenticated(req)
	return review, h.judge(review), free
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

// readPrefix reads the uid of a review that is not worked on.
func readPrefix(body io.Reader) (*Review, error) {
	var buf bytes.Buffer
	if _, err := buf.ReadFrom(io.LimitReader(body, prefixBytes)); err != nil {
		return &Review{}, err
	}
	review, _ := decodeReview(buf.Bytes()) // It is cut short as a rule; the uid comes first.
	return review, nil
}

// write answers. Without a uid there is nothing that the API server would take.
func (h *handler) write(w http.ResponseWriter, review *Review, answer *Answer) {
	if review.UID == "" {
		http.Error(w, "unassessed: "+string(answer.Reason), statusOf(answer.Reason))
		return
	}
	raw, err := answer.encode(review.UID)
	if err != nil {
		http.Error(w, "unassessed", http.StatusInternalServerError)
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
	if answer.Verdict != VerdictUnassessed || answer.Reason == ReasonShed {
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
	h.cfg.Log.LogAttrs(req.Context(), level, "admission.unassessed", attrs...)
}
