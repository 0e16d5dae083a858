package s3wire

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/strandline/strandline/objstore"
)

// maxRetryAfter is the longest ask that is believed. A header of a day is a mistake
// or an outage, and either is looked at again sooner.
const maxRetryAfter = time.Hour

// RetryAfter reads how long a store asks to be left alone: a number of seconds, or a
// date. What cannot be read, and what has passed, is no ask.
//
// A date is held against the answer's own Date, so that this machine's clock does not
// matter, and against now without one.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		return 0
	}
	if digits(text) {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter // err: a number beyond int64
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

func digits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}

// overloaded tells that a refusal means the store's load, and so concerns every call:
// a 429, a 503 in the store's own words, or one of its codes for it. A 503 to a HEAD
// has no words. A proxy's bare 503 says nothing of the store behind it.
func (ex *Exchange) overloaded() bool {
	switch ex.status {
	case http.StatusTooManyRequests:
		return true
	case http.StatusServiceUnavailable:
		if ex.code != "" || ex.Op == objstore.OpHead {
			return true
		}
	}
	return loadCode(ex.code)
}

// loadCode are the codes of a store that has too much to do.
func loadCode(code string) bool {
	switch code {
	case "SlowDown", "SlowDownRead", "SlowDownWrite", "ServiceUnavailable", "Throttling", "ThrottlingException",
		"RequestLimitExceeded", "RequestThrottled", "TooManyRequests", "Busy":
		return true
	}
	return false
}
