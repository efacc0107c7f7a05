package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
	"time"
)

const (
	caFile, certFile, keyFile = "ca.crt", "server.crt", "server.key"
	tokenFile                 = "tokens.csv"
)

// writeCredentials writes the server's certificate and key and the users' tokens.
// It returns the certificate that clients have to trust.
func (c *ControlPlane) writeCredentials() ([]byte, error) {
	ca, caKey, err := newCertificate(&x509.Certificate{
		Subject: pkix.Name{CommonName: "e2e CA"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	if err != nil {
		return nil, err
	}
	server, key, err := newCertificate(&x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-apiserver"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		KeyUsage: x509.KeyUsageDigitalSignature, DNSNames: []string{"localhost", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), c.o.Address.AsSlice(), net.IPv4(10, 96, 0, 1)},
	}, ca, caKey)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	caPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw})
	for name, data := range map[string][]byte{
		caFile:    caPEM,
		certFile:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Raw}),
		keyFile:   pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
		tokenFile: []byte(c.tokens()),
	} {
		if err := os.WriteFile(c.path(name), data, 0o600); err != nil {
			return nil, fmt.Errorf("write credentials: %w", err)
		}
	}
	return caPEM, nil
}

// newCertificate returns a certificate for a new key, signed by parent, or by
// itself if that is nil.
func newCertificate(template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	// The emulated machine's clock may be behind.
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, nil, fmt.Errorf("make the certificate of %s: %w", template.Subject, err)
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}

func (c *ControlPlane) token(user string) string { return c.secret + "-" + user }

func (c *ControlPlane) tokens() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s,%s,%s,system:masters\n", c.token(Admin), Admin, Admin)
	for _, user := range c.o.Users {
		fmt.Fprintf(&b, "%s,%s,%s\n", c.token(user), user, user)
	}
	return b.String()
}
