package demo

// person is a member of the demo's service.
type person struct {
	name, email, phone string
	joined             int    // days ago
	by                 method // of sign-up, and of sign-ins
	every              int    // days between visits
	on                 string // devices, by their letters in the table below
	mfa, unverified    bool

	n        int // position in the table
	id       string
	password string
	secret   string   // of the authenticator app; "": none
	recovery []string // codes
	sessions map[rune]*session
}

type session struct{ access, refresh string }

type method string

const (
	password method = "password"
	link     method = "link"
	phone    method = "phone"
	github   method = "github" // imported with this identity
	google   method = "google"
	old      method = "old" // imported with a password hash
	invited  method = "invited"
)

// devices are the User-Agents of present devices. Phones change their network, the others
// stay at home, and those of the staff are at the office.
var devices = map[rune]struct {
	agent  string
	mobile bool
}{
	'i': {"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1", true},
	'a': {"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/137.0.0.0 Mobile Safari/537.36", true},
	'g': {"Mozilla/5.0 (Android 15; Mobile; rv:139.0) Gecko/139.0 Firefox/139.0", true},
	'p': {"Mozilla/5.0 (iPad; CPU OS 17_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.7 Mobile/15E148 Safari/604.1", false},
	't': {"Mozilla/5.0 (Linux; Android 14; SM-X710) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/27.0 Chrome/125.0.0.0 Safari/537.36", false},
	'w': {"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/137.0.0.0 Safari/537.36", false},
	'e': {"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/137.0.0.0 Safari/537.36 Edg/137.0.0.0", false},
	'm': {"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15", false},
	'f': {"Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:139.0) Gecko/20100101 Firefox/139.0", false},
	'l': {"Mozilla/5.0 (X11; Linux x86_64; rv:139.0) Gecko/20100101 Firefox/139.0", false},
}

// The people with a part in the month's events.
const (
	owner     = "helena.brandt@example.com"
	adminName = "david.okonkwo@example.com"
	support   = "priya.raman@example.com" // invited
	waiting   = "tom.hartley@example.com"
	locked    = "gerald.whitcombe@example.org"
	banned    = "promo.winner24@example.net"
	leaving   = "karin.solberg@example.org"
	bouncing  = "lukas.meier@example.net" // its mailbox is full
	deferring = "nadia.haddad@example.org"
)

// month are the people. The first of the staff joined when the service began.
var month = []person{
	{name: "Helena Brandt", email: owner, joined: 29, by: password, every: 1, on: "mi", mfa: true},
	{name: "David Okonkwo", email: adminName, joined: 29, by: password, every: 1, on: "wa", mfa: true},
	{name: "Clara Jensen", email: "clara.jensen@example.com", joined: 28, by: password, every: 2, on: "mp", mfa: true},
	{name: "Mateo Alvarez", email: "mateo.alvarez@example.com", joined: 28, by: password, every: 2, on: "l", mfa: true},
	{name: "Yuki Tanabe", email: "yuki.tanabe@example.com", joined: 26, by: link, every: 3, on: "fi"},
	{name: "Priya Raman", email: support, joined: 22, by: invited, every: 1, on: "fa"},
	{name: "Tom Hartley", email: waiting, joined: 21, by: password, every: 3, on: "e", mfa: true},

	{name: "Gerald Whitcombe", email: locked, joined: 29, by: old, every: 99, on: "w"},
	{name: "Ingrid Nyström", email: "ingrid.nystrom@example.org", joined: 29, by: old, every: 6, on: "w"},
	{name: "Paolo Ferrero", email: "paolo.ferrero@example.net", joined: 29, by: old, every: 7, on: "ma"},
	{name: "Ruth Abernathy", email: "ruth.abernathy@example.org", joined: 29, by: old, every: 8, on: "p"},
	{name: "Samuel Osei", email: "s.osei@example.net", joined: 29, by: github, every: 4, on: "la"},
	{name: "Lena Vogt", email: "lena.vogt@example.org", joined: 29, by: github, every: 5, on: "m"},
	{name: "Arjun Mehta", email: "arjun.mehta@example.net", joined: 29, by: google, every: 3, on: "aw"},
	{name: "Beatriz Lopes", email: "bia.lopes@example.org", joined: 29, by: google, every: 6, on: "i"},
	{name: "Chen Wei", email: "chen.wei@example.net", joined: 29, by: google, every: 5, on: "at"},
	{name: "Karin Solberg", email: leaving, joined: 29, by: old, every: 12, on: "e"},

	{name: "Amara Nwosu", email: "amara.nwosu@example.net", joined: 27, by: password, every: 4, on: "iw", mfa: true},
	{name: "Jonas Weidmann", email: "jonas.weidmann@example.org", joined: 27, by: password, every: 3, on: "wg"},
	{name: "Sofia Marchetti", email: "sofia.marchetti@example.net", joined: 26, by: link, every: 2, on: "ip"},
	{name: "Oliver Prescott", email: "oliver.prescott@example.org", joined: 25, by: password, every: 5, on: "w"},
	{name: "Fatima Zahra Benali", joined: 25, by: phone, phone: "+447700900123", every: 4, on: "a"},
	{name: "Marek Dvořák", email: "marek.dvorak@example.org", joined: 24, by: password, every: 6, on: "la"},
	{name: "Hannah Lindqvist", email: "hannah.lindqvist@example.net", joined: 24, by: link, every: 3, on: "m"},
	{name: "Diego Fuentes", email: "diego.fuentes@example.org", joined: 23, by: password, every: 7, on: "a"},
	{name: "Lukas Meier", email: bouncing, joined: 23, by: password, every: 5, on: "w"},
	{name: "Grace Adeyemi", email: "grace.adeyemi@example.net", joined: 22, by: link, every: 4, on: "ie"},
	{name: "Noah Fitzgerald", email: "noah.fitzgerald@example.org", joined: 22, by: password, every: 2, on: "wi"},
	{name: "Mei-Ling Ho", email: "meiling.ho@example.net", joined: 20, by: password, every: 6, on: "t"},
	{name: "Viktor Sandberg", email: "viktor.sandberg@example.org", joined: 20, by: link, every: 5, on: "f"},
	{name: "Aisha Rahman", email: "aisha.rahman@example.net", joined: 19, by: password, every: 3, on: "aw", mfa: true},
	{name: "Pieter de Graaf", email: "pieter.degraaf@example.org", joined: 18, by: password, every: 8, on: "e"},
	{name: "Eleni Papadaki", email: "eleni.papadaki@example.net", joined: 18, by: link, every: 4, on: "ip"},
	{name: "Kwame Boateng", joined: 17, by: phone, phone: "+447700900456", every: 5, on: "g"},
	{name: "Isabelle Fournier", email: "isabelle.fournier@example.org", joined: 16, by: password, every: 4, on: "m"},
	{name: "Nadia Haddad", email: deferring, joined: 15, by: password, every: 5, on: "i"},
	{name: "Rasmus Holm", email: "rasmus.holm@example.net", joined: 14, by: link, every: 3, on: "la"},
	{name: "Charlotte Whitfield", email: "c.whitfield@example.org", joined: 13, by: password, every: 6, on: "w"},
	{name: "Tariq Aziz Khan", email: "tariq.khan@example.net", joined: 12, by: link, every: 4, on: "a"},
	{name: "Max Winner", email: banned, joined: 11, by: password, every: 2, on: "w", unverified: true},
	{name: "Anneliese Bauer", email: "anneliese.bauer@example.org", joined: 10, by: link, every: 5, on: "p"},
	{name: "Joaquim Ribeiro", email: "joaquim.ribeiro@example.net", joined: 9, by: password, every: 3, on: "wa", mfa: true},
	{name: "Saoirse Kelly", email: "saoirse.kelly@example.org", joined: 8, by: link, every: 2, on: "if"},
	{name: "Emre Yıldız", email: "emre.yildiz@example.net", joined: 6, by: password, every: 2, on: "a"},
	{name: "Wanjiru Kamau", email: "wanjiru.kamau@example.org", joined: 5, by: link, every: 2, on: "g"},
	{name: "Felix Aumann", email: "felix.aumann@example.net", joined: 4, by: password, every: 1, on: "l"},
	{name: "Lucía Romero", email: "lucia.romero@example.org", joined: 3, by: link, every: 1, on: "i"},
	{name: "Henrik Dahl", email: "henrik.dahl@example.net", joined: 2, by: password, every: 1, on: "e", unverified: true},
	{name: "Zofia Kowalska", email: "zofia.kowalska@example.org", joined: 1, by: link, every: 1, on: "m"},
}
