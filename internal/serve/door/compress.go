// SPDX-License-Identifier: Apache-2.0

package door

import (
	"compress/gzip"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// minCompressed is the size from which an answer is compressed, in bytes: a smaller one fits into one packet.
const minCompressed = 1 << 10

// compressible are the types that are compressed. A stream of events is none of them.
var compressible = []string{
	"text/html", "text/css", "text/javascript", "application/javascript", "image/svg+xml", "application/json", "application/problem+json",
}

// tagSuffix is that of the ETags of compressed representations: a strong ETag is of one representation (RFC 9110, 8.8.3.3).
const tagSuffix = `-gzip"`

// compressAnswers compresses answers for callers who take gzip.
func compressAnswers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"If-Match", "If-None-Match"} { // a caller may send the ETag of either representation
			for i, tags := range r.Header.Values(name) {
				r.Header[name][i] = strings.ReplaceAll(tags, tagSuffix, `"`)
			}
		}
		if !mayCompress(r) {
			next.ServeHTTP(w, r)
			return
		}
		c := &compressor{ResponseWriter: w}
		defer c.endAnswer()
		next.ServeHTTP(c, r)
	})
}

// mayCompress tells whether the answer to a request may be compressed. A page of another site that leads the browser of a user here
// could choose a text beside a secret, and read the size of the answer (BREACH): such requests, and those of browsers that
// do not tell of the site, get plain answers.
func mayCompress(r *http.Request) bool {
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case r.Method == http.MethodHead, r.Header.Get("Range") != "", r.Header.Get("Upgrade") != "":
		return false
	case site == "" && r.Header.Get("Cookie") != "", site != "" && site != "same-origin" && site != "none":
		return false
	}
	return takesGzip(r.Header.Values("Accept-Encoding"))
}

// takesGzip reads Accept-Encoding (RFC 9110, 12.5.3).
func takesGzip(accepted []string) bool {
	for _, list := range accepted {
		for of := range strings.SplitSeq(list, ",") {
			coding, parameters, err := mime.ParseMediaType(of)
			if err != nil || coding != "gzip" {
				continue
			}
			weight, told := parameters["q"]
			if value, err := strconv.ParseFloat(weight, 64); !told || err == nil && value > 0 {
				return true
			}
		}
	}
	return false
}

// gzips are writers that are not in use: each has some hundred kilobytes.
var gzips = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is known
	return w
}}

// compressor compresses an answer of a compressible type as soon as it is large enough.
type compressor struct {
	http.ResponseWriter
	// code is that of the answer; 0 before it has begun.
	code int
	// passes says that the answer is sent as it is.
	passes bool
	// held is the beginning of an answer that may stay small.
	held []byte
	gzip *gzip.Writer
}

// Unwrap lets http.ResponseController find the writer below.
func (c *compressor) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (c *compressor) WriteHeader(code int) {
	switch {
	case code < http.StatusOK:
		c.ResponseWriter.WriteHeader(code)
		return
	case c.code != 0: // the first one counts
		return
	}
	c.code = code
	if !c.isCompressible() {
		c.sendPlain()
	}
}

// isCompressible tells whether the answer is of a type that is compressed. An answer that sets cookies may have secrets of a
// login.
func (c *compressor) isCompressible() bool {
	header := c.Header()
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && slices.Contains(compressible, media) && header.Get("Content-Encoding") == "" && header.Get("Set-Cookie") == "" &&
		c.code != http.StatusNoContent && c.code != http.StatusNotModified
}

// sendPlain sends the answer as it is from now on, with what was held.
func (c *compressor) sendPlain() {
	c.passes = true
	c.ResponseWriter.WriteHeader(c.code)
	if len(c.held) > 0 {
		_, _ = c.ResponseWriter.Write(c.held) // a caller who does not listen needs no answer
	}
	c.held = nil
}

// Write implements http.ResponseWriter.
func (c *compressor) Write(body []byte) (int, error) {
	if c.code == 0 {
		c.WriteHeader(http.StatusOK)
	}
	switch {
	case c.passes:
		return c.ResponseWriter.Write(body)
	case c.gzip != nil:
		return c.gzip.Write(body)
	}
	c.held = append(c.held, body...)
	if len(c.held) < minCompressed {
		return len(body), nil
	}
	c.beginGzip()
	_, err := c.gzip.Write(c.held)
	c.held = nil
	return len(body), err
}

// beginGzip compresses from now on.
func (c *compressor) beginGzip() {
	header := c.Header()
	header.Del("Content-Length")
	header.Del("Accept-Ranges")
	header.Set("Content-Encoding", "gzip")
	header.Add("Vary", "Accept-Encoding")
	if tag, isStrong := strings.CutSuffix(header.Get("ETag"), `"`); isStrong && strings.HasPrefix(tag, `"`) {
		header.Set("ETag", tag+tagSuffix)
	}
	c.ResponseWriter.WriteHeader(c.code)
	c.gzip = gzips.Get().(*gzip.Writer) //nolint:forcetypeassert // the pool has no other values
	c.gzip.Reset(c.ResponseWriter)
}

// FlushError implements the flush of http.ResponseController.
func (c *compressor) FlushError() error {
	switch {
	case c.gzip != nil:
		if err := c.gzip.Flush(); err != nil {
			return err
		}
	case c.code != 0 && !c.passes:
		c.sendPlain()
	}
	return http.NewResponseController(c.ResponseWriter).Flush()
}

// endAnswer sends the rest of an answer.
func (c *compressor) endAnswer() {
	switch {
	case c.gzip != nil:
		_ = c.gzip.Close() // a caller who does not listen needs no answer
		gzips.Put(c.gzip)
	case c.code != 0 && !c.passes:
		c.sendPlain()
	}
}
