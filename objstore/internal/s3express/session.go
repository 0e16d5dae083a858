package s3express

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/xml"
	"net/http"
	"time"
)

// session is what CreateSession gave out.
type session struct {
	accessKey, secretKey string
	expires              time.Time
}

func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails, by its documentation
	return hex.EncodeToString(b)
}

func (s *Server) createSession(w http.ResponseWriter, c *call) *refusal {
	if mode := c.Header.Get("X-Amz-Create-Session-Mode"); mode != "" && mode != "ReadWrite" {
		return notImplemented("session mode " + mode + ", by this server")
	}
	token := random(24)
	made := session{
		accessKey: "SESSION" + random(8), secretKey: random(16),
		// Seconds, as the answer has no more.
		expires: s.opts.Clock().Add(s.opts.SessionLife).Truncate(time.Second),
	}
	s.mu.Lock()
	s.sessions[token] = made
	s.made++
	s.mu.Unlock()
	type credentials struct {
		SessionToken, SecretAccessKey, AccessKeyId, Expiration string //nolint:revive // S3's names
	}
	writeXML(w, http.StatusOK, struct {
		XMLName     xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CreateSessionResult"`
		Credentials credentials
	}{Credentials: credentials{token, made.secretKey, made.accessKey, made.expires.UTC().Format(time.RFC3339)}})
	return nil
}

// secretOf finds the secret that a request must be signed with: the session's whose
// token it carries, or the IAM user's for the few operations that take no session.
func (s *Server) secretOf(c *call, op operation, accessKey string) (string, *refusal) {
	token := c.Header.Get("X-Amz-S3session-Token")
	switch {
	case c.Header.Get("X-Amz-Security-Token") != "":
		return "", &refusal{400, "InvalidToken", "A directory bucket's session goes in x-amz-s3session-token."}
	case op.iam && token != "":
		return "", &refusal{403, "AccessDenied", op.name + " is not authorized by a session: sign it with IAM credentials."}
	case op.iam && accessKey != s.opts.AccessKey:
		return "", &refusal{403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records."}
	case op.iam:
		return s.opts.SecretKey, nil
	case token == "":
		return "", &refusal{403, "AccessDenied", op.name + " needs a session: it came without x-amz-s3session-token."}
	}
	s.mu.Lock()
	known, ok := s.sessions[token]
	s.mu.Unlock()
	switch {
	case !ok:
		return "", &refusal{400, "InvalidToken", "The provided token is malformed or otherwise not valid."}
	case !s.opts.Clock().Before(known.expires):
		return "", &refusal{400, "ExpiredToken", "The provided token has expired."}
	case known.accessKey != accessKey:
		return "", &refusal{403, "InvalidAccessKeyId", "The token is another access key's."}
	}
	return known.secretKey, nil
}
