def test_me(api, robo):
    r = api(robo).get("/api/v1/me/")
    assert r.status_code == 200, r.content
    print(r.json())
def test_anon(api, db):
    r = api().get("/api/v1/me/")
    assert r.status_code == 401
    print(r.json(), r.headers)
