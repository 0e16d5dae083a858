package s3express

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	service   = "s3express"
	algorithm = "AWS4-HMAC-SHA256"
	dateForm  = "20060102T150405Z"
	// maxSkew is how far a request's clock may be off.
	maxSkew = 15 * time.Minute
)

// signature is the Authorization header in its parts.
type signature struct {
	accessKey string
	scope     []string // date, region, service, "aws4_request"
	signed    []string // header names
	value     string
}

func parseSignature(header string) (signature, bool) {
	var sig signature
	rest, ok := strings.CutPrefix(header, algorithm+" ")
	if !ok {
		return sig, false
	}
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Credential":
			fields := strings.Split(value, "/")
			sig.accessKey, sig.scope = fields[0], fields[1:]
		case "SignedHeaders":
			sig.signed = strings.Split(value, ";")
		case "Signature":
			sig.value = value
		}
	}
	return sig, sig.accessKey != "" && len(sig.scope) == 4 && len(sig.signed) > 0 && sig.value != ""
}

// authorize verifies who signed the request, and that it is who may.
func (s *Server) authorize(c *call, op operation) *refusal {
	sig, ok := parseSignature(c.Header.Get("Authorization"))
	if !ok {
		return &refusal{403, "AccessDenied", "The request is not signed by " + algorithm}
	}
	if sig.scope[1] != s.opts.Region || sig.scope[2] != service || sig.scope[3] != "aws4_request" {
		return &refusal{400, "AuthorizationHeaderMalformed", "The scope is not " + s.opts.Region + "/" + service + "/aws4_request"}
	}
	at, err := time.Parse(dateForm, c.Header.Get("X-Amz-Date"))
	if err != nil || at.Format("20060102") != sig.scope[0] {
		return &refusal{403, "AccessDenied", "X-Amz-Date is not a date, or not the scope's"}
	}
	if off := s.opts.Clock().Sub(at).Abs(); off > maxSkew {
		return &refusal{403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large."}
	}
	secret, why := s.secretOf(c, op, sig.accessKey)
	if why != nil {
		return why
	}
	if why := signedEnough(c, sig.signed); why != nil {
		return why
	}
	if !hmac.Equal([]byte(sign(secret, sig, c)), []byte(sig.value)) {
		return &refusal{403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided."}
	}
	return nil
}

// signedEnough: the host and every x-amz- header must be under the signature, the
// session's token among them.
func signedEnough(c *call, signed []string) *refusal {
	for name := range c.Header {
		if low := strings.ToLower(name); strings.HasPrefix(low, "x-amz-") && !slices.Contains(signed, low) {
			return &refusal{403, "AccessDenied", "The header " + low + " is not signed"}
		}
	}
	if !slices.Contains(signed, "host") {
		return &refusal{403, "AccessDenied", "The host is not signed"}
	}
	return nil
}

func sign(secret string, sig signature, c *call) string {
	canonical := sha256.Sum256([]byte(canonicalRequest(c, sig.signed)))
	text := strings.Join([]string{
		algorithm, c.Header.Get("X-Amz-Date"), strings.Join(sig.scope, "/"), hex.EncodeToString(canonical[:]),
	}, "\n")
	key := []byte("AWS4" + secret)
	for _, part := range sig.scope {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, text))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text)) // never fails, by hash.Hash's contract
	return h.Sum(nil)
}

func canonicalRequest(c *call, signed []string) string {
	var b strings.Builder
	b.WriteString(c.Method + "\n" + c.URL.EscapedPath() + "\n")
	b.WriteString(strings.ReplaceAll(c.URL.Query().Encode(), "+", "%20") + "\n")
	for _, name := range signed {
		b.WriteString(name + ":" + headerValue(c.Request, name) + "\n")
	}
	b.WriteString("\n" + strings.Join(signed, ";") + "\n" + c.Header.Get("X-Amz-Content-Sha256"))
	return b.String()
}

// headerValue: net/http takes two headers out of the map.
func headerValue(r *http.Request, name string) string {
	switch name {
	case "host":
		return r.Host
	case "content-length":
		return strconv.FormatInt(r.ContentLength, 10)
	}
	values := slices.Clone(r.Header.Values(name))
	for i := range values {
		values[i] = strings.Join(strings.Fields(values[i]), " ")
	}
	return strings.Join(values, ",")
}
